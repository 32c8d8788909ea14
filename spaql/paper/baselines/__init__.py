"""What SPAQL-R is measured against: the limit, rules by hand, and the textbook's algorithms; one small file each."""
