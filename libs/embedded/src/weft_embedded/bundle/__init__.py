"""What Weft is installed from elsewhere: a folder of checked files, and the script that a further machine runs."""
