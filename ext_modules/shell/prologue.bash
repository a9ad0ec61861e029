# Read by bash before each script (through BASH_ENV): takes up the environment that the agent's previous
# script left, and notes the directory and the environment when this one ends.
unset BASH_ENV
__iact_mark=$IACT_CALL
if [ -n "$IACT_ENTER" ]; then
    . "/proc/self/fd/$IACT_ENTER" 2>/dev/null
    eval "exec $IACT_ENTER<&-"
fi
export IACT_CALL=$__iact_mark
__iact_leave=$IACT_LEAVE
unset IACT_ENTER IACT_LEAVE __iact_mark
trap '{ pwd -P; export -p; } >&"$__iact_leave" 2>/dev/null' EXIT
