awk 'BEGIN { print "a", 

"b" > "victim<>.txttxt" }'