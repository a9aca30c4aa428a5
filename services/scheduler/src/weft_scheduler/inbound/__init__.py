"""What comes in: what scrapes ask."""
