#!/bin/bash
# slurm.sh LAYER: install Debian's Slurm into LAYER, the upper directory of an overlay over /, as root within
# `unshare -m`. Nothing outside of LAYER changes.
set -e
work=$(mktemp -d "$1.XXXXXX")
trap 'umount -R "$work/m"; rm -rf "$work"' EXIT
mkdir -p "$work"/{u,w,m}
mount -t overlay overlay -o "lowerdir=/,upperdir=$work/u,workdir=$work/w" "$work/m"
for name in proc dev sys; do mount --rbind "/$name" "$work/m/$name"; done
# no daemon is started by its installation
printf '#!/bin/sh\nexit 101\n' > "$work/m/usr/sbin/policy-rc.d"
chmod +x "$work/m/usr/sbin/policy-rc.d"
chroot "$work/m" apt-get update -q
DEBIAN_FRONTEND=noninteractive chroot "$work/m" apt-get install -y -q --no-install-recommends \
    slurmctld slurmd slurm-client munge
rm -rf "$1"
cp -a "$work/u" "$1"
