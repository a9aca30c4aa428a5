#!/bin/sh
# Founds the mesh's keys in /keys, or renews them, and lays out for each part what is its own in /parts.
#
#   GATEWAYS   names and addresses under which people reach the gateway
#   NATS       its servers, each NAME=HOST
#   NODES      so many nodes the join token lets in
set -eu
umask 077
cd /keys

if [ -e nats-servers ] && [ "$(cat nats-servers)" != "$NATS" ]; then
    echo "this mesh was founded with other NATS servers: $(cat nats-servers). Its log doesn't move to $NATS by itself:" \
        "the README says what can be done" >&2
    exit 1
fi
set --
for each in gateway $GATEWAYS; do set -- "$@" --gateway "$each"; done
for each in $NATS; do set -- "$@" --nats "$each"; done
[ -e grafana-password ] || head -c 18 /dev/urandom | base64 >grafana-password
weft found /keys/mesh --postgres postgres --nodes "$NODES" "$@"
echo "$NATS" >nats-servers

# Each at once, and its reader's already: who runs may read it now. A key before its certificate, which is what tells
# a reader that both are new.
give() { # PART FILE…
    part=/parts/$1
    shift
    for file; do
        cp "$file" "$part/.new"
        chown 10001:10001 "$part/.new"
        mv "$part/.new" "$part/${file##*/}"
    done
}
cd mesh
give trust trust/*
for each in registry scheduler reconciler metadata-cache gateway; do give "$each" "services/$each/key.pem" "services/$each"/*; done
for each in $NATS; do
    server=${each%%=*}
    give "$server" "nats/$server/key.pem" "nats/$server"/*
done
give registry mesh.env
give gateway mesh.env postgres-url
give postgres postgres-password
give worker join-token
give admin admin-key trust/authority.pem
give prometheus trust/authority.pem
give grafana ../grafana-password
chown -R 10001:10001 /keys /parts/*
chmod -R go= /keys /parts/*
# What is new is root's, or its image's. What servers write in already is left alone.
for each in /data/*; do
    [ "$(stat -c %u "$each")" = 10001 ] || chown -R 10001:10001 "$each"
    chmod go= "$each"
done
