# Read by bash before each script (through BASH_ENV): restores the environment that the agent's previous script
# left, and notes the directory and the environment when this one ends. The descriptor to note them on is written
# into the trap itself, since the script could point a variable at a file.
unset BASH_ENV
trap "{ pwd -P; export -p; } >&$IACT_LEAVE 2>/dev/null" EXIT
__iact_mark=$IACT_CALL
if [ -n "$IACT_ENTER" ]; then
    . "/proc/self/fd/$IACT_ENTER" 2>/dev/null
    eval "exec $IACT_ENTER<&-"
fi
export IACT_CALL=$__iact_mark
unset IACT_ENTER IACT_LEAVE __iact_mark
