
# What follows is checked with this script's own digest, which stands in the line that fetched it: the mesh's authority,
# and each file's digest.
authority() {
    cat <<'END'
@AUTHORITY@
END
}
files() {
    cat <<'END'
@FILES@
END
}
made_for='@MACHINE@'

join= service=
arguments=$#
while [ "$arguments" -gt 0 ]; do
    word=$1 arguments=$((arguments - 1))
    shift
    case $word in
    --join) [ "$arguments" -gt 0 ] || fail "--join needs the address of the mesh"; join=$1 arguments=$((arguments - 1)); shift ;;
    --systemd) service=yes ;;
    *) set -- "$@" "$word" ;;
    esac
done
case $join in https://*) ;; *) fail "say which mesh this machine is to join: --join https://HOST:PORT" ;; esac
[ -n "${WEFT_JOIN_TOKEN:-}" ] || fail "a worker needs a registration token: WEFT_JOIN_TOKEN in its environment"
# The worker's alone: what is run on the way doesn't get it.
token=$WEFT_JOIN_TOKEN
unset WEFT_JOIN_TOKEN
at=${join#https://}
at=${at%%/*}
case $at in *:*[0-9]) ;; *) at=$at:443 ;; esac
command -v curl >/dev/null 2>&1 || fail "curl is needed, and is not there: install it"
find_python

version=$prefix/versions/$(sum "$0" | cut -c 1-12)
mkdir -p "$version/bundle"
authority >"$version/authority.pem"
if [ ! -e "$version/whole" ]; then
    say "fetching Weft from $join"
    files | while read -r digest name; do
        case $name in others/*) [ "$made_for" = "$(machine)" ] || continue ;; esac
        to=$version/bundle/$name
        [ ! -f "$to" ] || [ "$(sum "$to")" != "$digest" ] || continue
        mkdir -p "$(dirname -- "$to")"
        # The gateway shows the mesh's own certificate to who asks for it by this name, whatever its address is.
        curl -fsS --retry 5 --connect-timeout 10 --speed-limit 1 --speed-time 60 --cacert "$version/authority.pem" \
            --connect-to "gateway.weft.internal:443:$at" -o "$to.part" \
            "https://gateway.weft.internal/install/$digest/$(basename -- "$name")" || fail "$name could not be fetched from $join"
        [ "$(sum "$to.part")" = "$digest" ] || { rm -f "$to.part"; fail "$name from $join is not the file that this script names"; }
        mv "$to.part" "$to"
    done || exit 1
    (cd "$version/bundle" && files | while read -r digest name; do [ ! -f "$name" ] || printf '%s  %s\n' "$digest" "$name"; done) \
        >"$version/sums"
    mv "$version/sums" "$version/bundle/SHA256SUMS"
fi
install_in "$version"
use "$version"
say "installed: $prefix/bin/weft"
export WEFT_JOIN_TOKEN="$token"
if [ -n "$service" ]; then exec "$prefix/bin/weft" install worker --systemd --now --join "$join" "$@"; fi
exec "$prefix/bin/weft" worker --join "$join" "$@"
