"""What only LCFS-PML needs: its confidence in candidate labels."""
