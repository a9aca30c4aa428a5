
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
[ -r "$here/SHA256SUMS" ] || fail "$here is no bundle: it has no SHA256SUMS"
say "checking the bundle"
while read -r digest name; do
    [ -f "$here/$name" ] || fail "$here/$name is missing: get the bundle anew"
    [ "$(sum "$here/$name")" = "$digest" ] || fail "$here/$name is not the file that was bundled: get the bundle anew"
done <"$here/SHA256SUMS"
find_python
made_for=$(sed -n 's/^machine //p' "$here/about")
[ "$made_for" = "$(machine)" ] ||
    fail "this bundle is for $made_for, and this machine is $(machine): bundle anew on one of its kind, or name another WEFT_PYTHON"
version=$prefix/versions/$(sum "$here/SHA256SUMS" | cut -c 1-12)
if [ ! -e "$version/whole" ]; then
    rm -rf "$version"
    mkdir -p "$version/bundle"
    while read -r digest name; do
        mkdir -p "$version/bundle/$(dirname -- "$name")"
        cp "$here/$name" "$version/bundle/$name"
    done <"$here/SHA256SUMS"
    cp "$here/SHA256SUMS" "$version/bundle/"
fi
install_in "$version"
use "$version"
say "installed: $prefix/bin/weft"
