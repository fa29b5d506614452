"""What the methods have in common that regress confidences of labels on features."""
