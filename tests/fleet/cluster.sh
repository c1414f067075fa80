#!/bin/bash
# cluster.sh LAYER ROOM N: a Slurm cluster of N nodes in namespaces of this process (`unshare -mpf`), as root.
# LAYER is an overlay's upper directory with Debian's slurmctld, slurmd, slurm-client and munge; ROOM is what the nodes
# share. Makes ROOM/up when it is up, and stays until it is killed, with all nodes.
set -e
layer=$1 room=$2 count=$3
mkdir -p "$room"/ov/{w,m}
# a copy of the layer: it lies below / itself, which an overlay refuses as a lower layer beside it
cp -a "$layer" "$room/ov/u"
mount -t overlay overlay -o "lowerdir=/,upperdir=$room/ov/u,workdir=$room/ov/w" "$room/ov/m"
cd "$room/ov/m"
mount --rbind /dev dev
mount --rbind /sys sys
mount -t proc proc proc
mkdir -p ".$room" run/munge run/slurm var/spool/slurm/ctld var/log/slurm var/log/munge var/lib/munge etc/munge
mount --bind "$room" ".$room"
rm -f etc/hosts
printf '127.0.0.1 localhost %s\n' "$(hostname)" > etc/hosts
# asks what a test put there
printf '#!/bin/sh\n[ ! -e %s/health.sh ] || exec %s/health.sh\n' "$room" "$room" > "$room/watch.sh"
chmod +x "$room/watch.sh"
cat > etc/slurm/slurm.conf <<EOF
ClusterName=t
SlurmctldHost=localhost
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
StateSaveLocation=/var/spool/slurm/ctld
SlurmdSpoolDir=/var/spool/slurm/d-%n
SlurmctldPidFile=/run/slurm/ctld.pid
SlurmdPidFile=/run/slurm/d-%n.pid
SlurmctldLogFile=/var/log/slurm/ctld.log
SlurmdLogFile=/var/log/slurm/d-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
SlurmdTimeout=30
HealthCheckProgram=$room/watch.sh
HealthCheckInterval=2
SlurmdParameters=config_overrides
NodeName=n[1-$count] NodeHostname=localhost NodeAddr=127.0.0.1 Port=[17001-$((17000 + count))] CPUs=1 State=UNKNOWN
PartitionName=p Nodes=ALL Default=YES MaxTime=INFINITE State=UP
EOF
cat > up.sh <<'EOF'
chown -R munge: /run/munge /etc/munge /var/lib/munge /var/log/munge
chmod 711 /run/munge /var/lib/munge
[ -s /etc/munge/munge.key ] || head -c 1024 /dev/urandom > /etc/munge/munge.key
chown munge: /etc/munge/munge.key
chmod 400 /etc/munge/munge.key
su -s /bin/sh munge -c /usr/sbin/munged
slurmctld
for number in $(seq 1 "$1"); do slurmd -N "n$number"; done
until [ "$(sinfo --noheader --states=idle --format=%D)" = "$1" ]; do sleep 0.5; done
EOF
chroot . bash /up.sh "$count" >&2
exec chroot . sh -c "touch $room/up; exec sleep infinity"
