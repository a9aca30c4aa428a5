# The first process of a container under Tilt: runs a service from /source, and starts it anew when it ends.
#
#   sh -c "$(cat keep.sh)" keep MODULE [FOLDER]
#
# The image's own code is compiled without a look at its sources, and its file system is read-only. So the code is
# copied to a volume once, which live update writes to, and which outlives the container.
set -eu
source=${2:-/source}
if [ ! -e "$source/.whole" ]; then
    cp -R "$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"/weft_* "$source"
    rm -rf "$source"/*.dist-info
    find "$source" -name __pycache__ -prune -exec rm -rf {} +
    : >"$source/.whole"
fi
export PYTHONPATH="$source" PYTHONDONTWRITEBYTECODE=

child='' ending=''
trap 'ending=1; [ -z "$child" ] || kill -TERM "$child" 2>/dev/null || :' TERM INT
while [ -z "$ending" ]; do
    rm -f "$source/.anew"
    python -m "$1" &
    child=$!
    echo "$child" >"$source/.process"
    while :; do
        status=0
        wait "$child" || status=$? # a signal ends the wait and not the child
        kill -0 "$child" 2>/dev/null || break
    done
    child=''
    # By itself: it failed, as with a file that can't be read, and the next save may mend it.
    [ -n "$ending" ] || [ -e "$source/.anew" ] || sleep 1
done
exit "$status"
