"""One client's text beside another's answer."""
