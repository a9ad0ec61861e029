a=(rm x=victim.txt)echo st -f f
true