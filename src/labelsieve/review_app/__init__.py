"""Local web app for reviewing labels."""
