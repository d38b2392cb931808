#!/usr/bin/env bash
# A real Kubernetes cluster on this machine, for tests.
# usage: cluster.sh up [--node | --nodes N] [--owner PID]... [--audit] [--dir DIR]
#                                          API server alone, or with N real nodes
#        cluster.sh load [--dir DIR] IMAGE.tar...   imports images into every node
#        cluster.sh status [--dir DIR]     what runs; fails unless all of it does
#        cluster.sh stop-api | start-api [--dir DIR]
#                                          kube-apiserver alone, killed and on its port again
#        cluster.sh down [--dir DIR]       stops and removes it; DIR/logs stays
# --owner PID  goes down by itself when one of these processes has ended, however it ended
# --audit      every write in DIR/logs/audit.log; those to pods and boosts with what was stored
# environment: CLUSTER_BIN     a folder of ready-made programs, in place of build.sh
#              APISERVER_ARGS  more flags for kube-apiserver, split at spaces
set -euo pipefail
umask 077

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=${XDG_CACHE_HOME:-$HOME/.cache}/startup-cpu-boost/cluster
nodes=0
owners=()
audit=
images=()

say() { echo "cluster: $*" >&2; }
die() { say "$*"; exit 1; }
millis() { echo $((${EPOCHREALTIME//[!0-9]/} / 1000)); }

# --- processes: each has DIR/run/NAME.pid with its PID and start time, and NAME.command ---------

# The state and start time of a PID; the start time tells a reused PID apart.
stat_of() {
  local line fields
  { read -r line <"/proc/$1/stat"; } 2>/dev/null || return 0
  read -ra fields <<<"${line##*) }"
  echo "${fields[0]} ${fields[19]}"
}

start() { # NAME COMMAND...
  local name=$1 pid
  shift
  printf '%s\0' "$@" >"$dir/run/$name.command"
  setsid "$@" >"$dir/logs/$name.log" 2>&1 </dev/null 9>&- &
  pid=$!
  disown
  echo "$pid $(stat_of "$pid" | cut -d' ' -f2)" >"$dir/run/$name.pid"
}

running() { # NAME: prints the PID if that very process still lives
  local pid begun now
  read -r pid begun <"$dir/run/$1.pid" || return 1
  read -r _ now < <(stat_of "$pid") && [[ $now == "$begun" ]] && living "$pid" && echo "$pid"
}

living() { # PID: a zombie does not count; some init processes leave them for seconds
  local state
  read -r state _ < <(stat_of "$1") && [[ $state != Z ]]
}

names() { # PATTERN: the recorded processes
  local file
  for file in "$dir"/run/$1.pid; do
    [[ ! -e $file ]] || basename "$file" .pid
  done
}

stop() { # NAME: ends the process, and for a node everything inside its PID namespace
  local pid child
  if pid=$(running "$1"); then
    child=$(child_of "$pid")
    kill -KILL "$pid" 2>/dev/null || true
    while living "$pid" || { [[ -n $child ]] && living "$child"; }; do sleep 0.02; done
  fi
  rm -f "$dir/run/$1.pid"
}

child_of() { ps -o pid= --ppid "$1" | tr -d ' ' || true; }

wait_for() { # SECONDS COMMAND...: until COMMAND succeeds; fails early when a process died,
  # unless that is what COMMAND waits for
  local end=$((SECONDS + $1)) name
  shift
  until "$@" >/dev/null 2>&1; do
    for name in $(names '*'); do
      running "$name" >/dev/null || "$@" >/dev/null 2>&1 || die "$name died: $(tail -n 3 "$dir/logs/$name.log")"
    done
    owners_live || die "its owner has ended"
    ((SECONDS < end)) || die "no success in time: $*"
    sleep 0.1
  done
}

owners_live() {
  local owner
  for owner in "${owners[@]}"; do living "$owner" || return 1; done
}

# The watchdog: a process of its own, so that it outlives whatever killed the owners. It takes
# itself off the record before it stops the rest.
watch() {
  local owner state begun now i began=()
  for owner in "${owners[@]}"; do
    read -r state begun < <(stat_of "$owner") || begun=
    began+=("$begun")
  done
  while :; do
    for i in "${!owners[@]}"; do
      read -r state now < <(stat_of "${owners[i]}") || now=
      [[ -z $now || $state == Z || $now != "${began[i]}" ]] || continue
      say "process ${owners[i]} has ended"
      rm -f "$dir/run/watchdog.pid"
      lock
      down
      return
    done
    sleep 0.5
  done
}

# One up or down of a folder at a time: a watchdog may find its owner gone while up is at work.
lock() {
  exec 9>"$dir/.lock"
  flock 9
}

free_port() { # below the ephemeral range; somebody else may still take it first
  local port
  while :; do
    port=$((20000 + RANDOM % 10000))
    (: <>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
  done
}

# --- certificates ------------------------------------------------------------------------------

make_ca() {
  openssl ecparam -name prime256v1 -genkey -noout -out "$pki/ca.key"
  openssl req -x509 -new -key "$pki/ca.key" -subj "/CN=$id-ca" -days 30 -out "$pki/ca.crt" \
    -addext keyUsage=critical,keyCertSign,cRLSign,digitalSignature
  openssl genrsa -out "$pki/sa.key" 2048 2>/dev/null
  openssl rsa -in "$pki/sa.key" -pubout -out "$pki/sa.pub" 2>/dev/null
}

make_cert() { # NAME SUBJECT [SUBJECT_ALTERNATIVE_NAMES]: serving with names, else client
  local usage=clientAuth
  [[ -z ${3:-} ]] || usage=serverAuth
  openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes \
    -keyout "$pki/$1.key" -subj "$2" 2>/dev/null |
    openssl x509 -req -CA "$pki/ca.crt" -CAkey "$pki/ca.key" -set_serial "0x$(openssl rand -hex 8)" \
      -days 30 -out "$pki/$1.crt" -extfile <(
        echo "keyUsage=critical,digitalSignature"
        echo "extendedKeyUsage=$usage"
        [[ -z ${3:-} ]] || echo "subjectAltName=$3"
      ) 2>/dev/null
}

kubeconfig() { # CERTIFICATE: with the credentials inside
  cat <<YAML
apiVersion: v1
kind: Config
current-context: $id
contexts: [{name: $id, context: {cluster: $id, user: $1}}]
clusters:
- name: $id
  cluster: {server: "$server", certificate-authority-data: $(base64 -w0 "$pki/ca.crt")}
users:
- name: $1
  user:
    client-certificate-data: $(base64 -w0 "$pki/$1.crt")
    client-key-data: $(base64 -w0 "$pki/$1.key")
YAML
}

# --- control plane -----------------------------------------------------------------------------

start_api() { # ADDRESS SERVICE_NETWORK KUBE_APISERVER_FLAG...
  local address=$1 services=$2 try
  shift 2
  make_cert apiserver /CN=kube-apiserver "$(printf %s \
    DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc, \
    "DNS:kubernetes.default.svc.cluster.local,IP:127.0.0.1,IP:$address,IP:${services%0/*}1")"
  make_cert admin /O=system:masters/CN=admin
  make_cert kubelet-client /O=system:masters/CN=kube-apiserver-kubelet-client
  [[ -z $audit ]] || audit_policy >"$dir/audit.yaml"

  # A socket in DIR cannot be taken by, or mistaken for, the etcd of another cluster. The peer and
  # the advertised addresses are for further members, which there are none of.
  start etcd "$bin/etcd" --data-dir "$dir/etcd" --unsafe-no-fsync --log-level warn --name only \
    --listen-client-urls "unix://$dir/etcd.sock" --advertise-client-urls http://127.0.0.1:1 \
    --listen-peer-urls http://127.0.0.1:0 --initial-advertise-peer-urls http://127.0.0.1:1 \
    --initial-cluster only=http://127.0.0.1:1

  for try in 1 2 3 4 5; do
    server=https://$address:$(free_port)
    # shellcheck disable=SC2086 # APISERVER_ARGS is a list
    start kube-apiserver "$bin/kube-apiserver" --etcd-servers "unix://$dir/etcd.sock" \
      --bind-address "$address" --advertise-address "$address" --secure-port "${server##*:}" \
      --tls-cert-file "$pki/apiserver.crt" --tls-private-key-file "$pki/apiserver.key" \
      --client-ca-file "$pki/ca.crt" --authorization-mode Node,RBAC \
      --kubelet-certificate-authority "$pki/ca.crt" \
      --kubelet-client-certificate "$pki/kubelet-client.crt" \
      --kubelet-client-key "$pki/kubelet-client.key" \
      --kubelet-preferred-address-types InternalIP \
      --service-account-issuer https://kubernetes.default.svc.cluster.local \
      --service-account-key-file "$pki/sa.pub" --service-account-signing-key-file "$pki/sa.key" \
      --service-cluster-ip-range "$services" --allow-privileged=true \
      ${audit:+--audit-policy-file "$dir/audit.yaml" --audit-log-path "$dir/logs/audit.log"} \
      "$@" ${APISERVER_ARGS:-}
    wait_for 60 api_ready_or_port_taken
    port_taken || break
    ((try < 5)) || die "no free port in $try tries: $(tail -n 1 "$dir/logs/kube-apiserver.log")"
  done
  kubeconfig admin >"$dir/kubeconfig.new"
  mv "$dir/kubeconfig.new" "$dir/kubeconfig"
}

start_api_again() {
  local command
  ! running kube-apiserver >/dev/null || die "kube-apiserver runs already"
  mapfile -d '' -t command <"$dir/run/kube-apiserver.command"
  server=$(sed -n 's/.*server: "\([^"]*\)".*/\1/p' "$dir/kubeconfig")
  start kube-apiserver "${command[@]}"
  wait_for 60 api_ready
}

# Who wrote what, and what was stored then. RequestReceived is kept for writes: a request without a
# ResponseComplete is one whose answer an end of kube-apiserver has swallowed.
audit_policy() {
  cat <<YAML
apiVersion: audit.k8s.io/v1
kind: Policy
omitManagedFields: true
rules:
- level: None
  verbs: [get, list, watch]
- level: RequestResponse
  resources:
  - {group: "", resources: [pods, pods/resize, pods/status]}
  - {group: autoscaling.x-k8s.io}
  - {group: coordination.k8s.io, resources: [leases]}
- level: Request
  resources: [{group: "", resources: [bindings, pods/binding]}]
- level: Metadata
YAML
}

api_ready_or_port_taken() { port_taken || api_ready; }

port_taken() {
  ! running kube-apiserver >/dev/null &&
    grep -q 'bind: address already in use' "$dir/logs/kube-apiserver.log"
}

api_ready() {
  [[ $(curl -s --max-time 5 --cacert "$pki/ca.crt" --cert "$pki/admin.crt" --key "$pki/admin.key" \
    "$server/readyz") == ok ]]
}

kubectl() { "$bin/kubectl" --kubeconfig "$dir/kubeconfig" "$@"; }

start_managers() {
  make_cert controller-manager /CN=system:kube-controller-manager
  make_cert scheduler /CN=system:kube-scheduler
  kubeconfig controller-manager >"$dir/controller-manager.kubeconfig"
  kubeconfig scheduler >"$dir/scheduler.kubeconfig"
  start kube-controller-manager "$bin/kube-controller-manager" --leader-elect=false \
    --kubeconfig "$dir/controller-manager.kubeconfig" --use-service-account-credentials \
    --root-ca-file "$pki/ca.crt" --service-account-private-key-file "$pki/sa.key" \
    --cluster-signing-cert-file "$pki/ca.crt" --cluster-signing-key-file "$pki/ca.key" \
    --secure-port 0
  start kube-scheduler "$bin/kube-scheduler" --leader-elect=false --secure-port 0 \
    --kubeconfig "$dir/scheduler.kubeconfig"
}

# --- network: 10.NET.0.0/24 joins host and nodes, 10.NET.(64+N).0/24 are the pods of node N ----

free_network() { # the NET of the first 10.NET.0.0/16 that no route touches, from a start by $id
  local i net
  for ((i = 0; i < 100; i++)); do
    net=$((100 + (16#${id: -2} + i) % 100))
    [[ -z $(ip -4 route show to root "10.$net.0.0/16") ]] || continue
    ! grep -qv '^default' < <(ip -4 route show to match "10.$net.0.0/16") || continue
    echo "$net"
    return
  done
  die "no free 10.x.0.0/16"
}

make_bridge() {
  ip link add "$id" type bridge
  ip addr add "10.$net.0.1/24" dev "$id"
  ip link set "$id" up
}

join_network() { # N: a network namespace for node N, on the bridge, with routes to all pods
  local n=$1 ns=$id-$1 other
  ip netns add "$ns"
  ip link add "$id.$n" type veth peer name eth0 netns "$ns"
  ip link set "$id.$n" master "$id" up
  ip -n "$ns" link set lo up
  ip -n "$ns" addr add "10.$net.0.$((n + 1))/24" dev eth0
  ip -n "$ns" link set eth0 up
  ip -n "$ns" route add default via "10.$net.0.1"
  for ((other = 1; other <= nodes; other++)); do
    ((other == n)) ||
      ip -n "$ns" route add "10.$net.$((64 + other)).0/24" via "10.$net.0.$((other + 1))"
  done
  ip route add "10.$net.$((64 + n)).0/24" via "10.$net.0.$((n + 1))"
  # The API server reaches Services, and so webhooks, through the kube-proxy of node 1.
  ((n != 1)) || ip route add "10.$net.128.0/20" via "10.$net.0.2"
}

remove_network() { # links by name first: those of a deleted namespace linger for a while
  local link ns
  for link in $(ip -o link | grep -o "${id}[.0-9]*" | sort -ru); do ip link del "$link"; done
  for ns in $(ip netns list | grep -o "^${id}-[0-9]*"); do ip netns del "$ns"; done
}

# --- nodes: see node.sh for the inside ---------------------------------------------------------

cgroup_roots() { # each version 1 hierarchy, else the version 2 one
  findmnt -rno TARGET -t cgroup || findmnt -rno TARGET -t cgroup2
}

make_cgroup() { # PATH: so that kubelets on one machine do not clean up after each other
  local root part path
  while read -r root; do
    path=$root
    for part in ${1//\// }; do
      [[ ! -e $path/cgroup.subtree_control ]] ||
        echo "+cpu +cpuset +memory +pids" >"$path/cgroup.subtree_control"
      mkdir -p "$path/$part"
      [[ ! -e $path/cpuset.mems ]] || {
        cat "$path/cpuset.cpus" >"$path/$part/cpuset.cpus"
        cat "$path/cpuset.mems" >"$path/$part/cpuset.mems"
      }
      path=$path/$part
    done
  done < <(cgroup_roots)
}

remove_cgroup() { # PATH
  local root try
  while read -r root; do
    for ((try = 0; try < 50; try++)); do
      [[ -d $root/$1 ]] || break
      find "$root/$1" -depth -type d -exec rmdir {} + 2>/dev/null || sleep 0.1
    done
  done < <(findmnt -rno TARGET -t cgroup,cgroup2)
}

cni_plugins() {
  local folder
  for folder in /usr/lib/cni /opt/cni/bin; do
    [[ ! -x $folder/ptp ]] || { echo "$folder"; return; }
  done
  die "the CNI plugins are missing"
}

configure_node() { # N
  local n=$1 home=$dir/node-$1 address=10.$net.0.$(($1 + 1))
  mkdir -p "$home"/{etc/cni,lib,log}
  chmod 755 "$dir" "$home" "$home"/{lib,log}
  make_cert "node-$n" "/O=system:nodes/CN=system:node:node-$n"
  make_cert "kubelet-$n" "/CN=node-$n" "DNS:node-$n,IP:$address"
  kubeconfig "node-$n" >"$home/etc/kubelet.kubeconfig"
  cp "$dir/kube-proxy.kubeconfig" "$home/etc/"

  # Without CAP_SYS_RESOURCE a process cannot lower its OOM score.
  cat >"$home/etc/containerd.toml" <<TOML
version = 2
disabled_plugins = ["io.containerd.internal.v1.opt"]
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "local/pause:1"
  restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "$(cni_plugins)"
  conf_dir = "$home/etc/cni"
TOML
  cat >"$home/etc/cni/10-pods.conflist" <<JSON
{"cniVersion": "0.4.0", "name": "pods", "plugins": [
  {"type": "ptp", "ipam": {"type": "host-local",
    "ranges": [[{"subnet": "10.$net.$((64 + n)).0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
JSON
  cat >"$home/etc/kubelet.yaml" <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: "$pki/ca.crt"}}
authorization: {mode: Webhook}
tlsCertFile: $pki/kubelet-$n.crt
tlsPrivateKeyFile: $pki/kubelet-$n.key
address: $address
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
cgroupDriver: cgroupfs
cgroupRoot: /$id/node-$n
failCgroupV1: false
failSwapOn: false
resolvConf: ""
volumePluginDir: /var/lib/kubelet/volumeplugins
evictionHard: {memory.available: 50Mi, nodefs.available: 1%, imagefs.available: 1%}
imageGCHighThresholdPercent: 100
YAML
  cat >"$home/etc/kube-proxy.yaml" <<YAML
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection: {kubeconfig: "$home/etc/kube-proxy.kubeconfig"}
hostnameOverride: node-$n
mode: iptables
clusterCIDR: 10.$net.64.0/18
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
YAML
}

start_node() { # N
  configure_node "$1"
  join_network "$1"
  make_cgroup "$id/node-$1"
  start "node-$1" nsenter --net="/run/netns/$id-$1" \
    unshare --mount --pid --fork --kill-child --mount-proc \
    "$here/node.sh" "node-$1" "$dir" "$bin" "10.$net.0.$(($1 + 1))"
}

in_node() { # NAME COMMAND...: in the mount namespace of a node
  local pid
  pid=$(running "$1") && pid=$(child_of "$pid") && [[ -n $pid ]] || return 1
  shift
  nsenter --target "$pid" --mount --pid -- "$@"
}

load() { # IMAGE.tar...: into all nodes at once
  local name pid pids=()
  for name in $(names 'node-*'); do
    load_into "$name" "$@" &
    pids+=($!)
  done
  ((${#pids[@]})) || die "no node is up in $dir"
  for pid in "${pids[@]}"; do wait "$pid"; done
}

load_into() { # NAME IMAGE.tar...
  local name=$1 tar
  shift
  for tar in "$@"; do
    in_node "$name" ctr --namespace k8s.io images import - <"$tar" >/dev/null
  done
}

base_image() { # also what holds a pod's namespaces
  "$here/mkimage.py" "$dir/base.tar" --name local/pause:1 --name local/busybox:1 --busybox \
    -- sleep infinity
}

# --- commands ----------------------------------------------------------------------------------

need() { # COMMAND...
  local command missing=()
  for command in "$@"; do
    [[ -n $(type -P "$command") ]] || missing+=("$command")
  done
  ((!${#missing[@]})) || die "missing programs: ${missing[*]}"
}

check_nodes() {
  local path
  need ip iptables conntrack containerd ctr runc busybox python3 nsenter unshare findmnt
  ((EUID == 0)) || die "nodes need root"
  ((nodes <= 60)) || die "at most 60 nodes"
  for path in "$here" "$dir" "${CLUSTER_BIN:-${XDG_CACHE_HOME:-$HOME}}"; do
    [[ ! $path/ =~ ^/(run|var/run|var/lib|var/log)/ ]] ||
      die "a node has its own /run, /var/lib and /var/log: $path must not lie there"
  done
}

up() {
  local begin lap name n
  local tools=(etcd kube-apiserver kubectl)
  ((!nodes)) || tools+=(kube-controller-manager kube-scheduler kubelet kube-proxy)
  [[ -z $(names '*') ]] || die "something is up in $dir: run down first"
  owners_live || die "--owner: no such process: ${owners[*]}"
  ((${#dir} <= 90)) || die "$dir: longer than the path of a socket may be"
  need openssl curl setsid ps
  ((!nodes)) || check_nodes
  if [[ -n ${CLUSTER_BIN:-} ]]; then
    bin=$CLUSTER_BIN
    ((nodes)) || tools=(etcd kube-apiserver)
    need "${tools[@]/#/$bin/}"
  else
    bin=$("$here/build.sh" "${tools[@]}")
  fi

  trap 'code=$?; ((!code)) || { say "failed; the logs are in $dir/logs"; down; }' EXIT
  rm -rf "$dir/logs"
  mkdir -p "$dir"/{logs,run,pki}
  begin=$(millis) lap=$begin
  ((!${#owners[@]})) || start watchdog "$here/cluster.sh" watch --dir "$dir" "${owners[@]/#/--owner=}"
  make_ca
  if ((!nodes)); then
    # Without controllers there are no default service accounts, and no endpoints to keep. Without a
    # kube-proxy webhooks are reached by the endpoints of their Services, which a test may write.
    start_api 127.0.0.1 10.96.0.0/16 --disable-admission-plugins=ServiceAccount \
      --endpoint-reconciler-type=none --enable-aggregator-routing=true
    lap_done "API server ready"
  else
    net=$(free_network)
    make_bridge
    start_api "10.$net.0.1" "10.$net.128.0/20" --enable-admission-plugins=NodeRestriction
    lap_done "API server ready"
    start_managers
    make_cert kube-proxy /CN=system:kube-proxy
    kubeconfig kube-proxy >"$dir/kube-proxy.kubeconfig"
    for ((n = 1; n <= nodes; n++)); do start_node "$n"; done
    base_image
    for name in $(names 'node-*'); do
      wait_for 30 in_node "$name" ctr version
    done
    load "$dir/base.tar"
    lap_done "images loaded"
    for ((n = 1; n <= nodes; n++)); do
      wait_for 60 kubectl wait --for=condition=Ready --timeout=10s "node/node-$n"
    done
    wait_for 30 kubectl get serviceaccount/default configmap/kube-root-ca.crt
    lap_done "$nodes node(s) ready"
  fi
  say "up in $(($(millis) - begin)) ms: export KUBECONFIG=$dir/kubeconfig"
}

lap_done() { # WHAT: uses begin and lap of up
  local now
  now=$(millis)
  say "$1 after $((now - lap)) ms"
  lap=$now
}

down() {
  local name
  for name in $(names watchdog) $(names 'node-*') $(names 'kube-*') $(names etcd); do
    stop "$name"
  done
  if ((EUID == 0)); then
    remove_network
    remove_cgroup "$id"
  fi
  rm -rf --one-file-system "$dir"/{run,pki,etcd,etcd.sock,node-*,kubeconfig*,*.kubeconfig,*.yaml,*.tar}
  say "down; logs in $dir/logs"
}

status() {
  local name pid bad=0
  for name in $(names '*'); do
    if pid=$(running "$name"); then
      printf '%-24s running  pid %s\n' "$name" "$pid"
    else
      printf '%-24s dead     see %s\n' "$name" "$dir/logs/$name.log"
      bad=1
    fi
  done
  [[ -n $(names '*') ]] || { echo "nothing is up in $dir"; bad=1; }
  return "$bad"
}

usage() { sed -n '2,13s/^# //p' "${BASH_SOURCE[0]}" >&2; exit 2; }

command=${1:-}
shift || true
while (($#)); do
  case $1 in
    --node) nodes=1 ;;
    --nodes) nodes=${2:?}; shift ;;
    --owner) owners+=("${2:?}"); shift ;;
    --owner=*) owners+=("${1#*=}") ;;
    --audit) audit=yes ;;
    --dir) dir=${2:?}; shift ;;
    -*) usage ;;
    *) images+=("$1") ;;
  esac
  shift
done
mkdir -p "$dir"
dir=$(cd "$dir" && pwd -P)
pki=$dir/pki
id=scb-$(sha256sum <<<"$dir" | cut -c1-6)

case $command in
  up | down) need flock; lock; "$command" ;;
  status | watch) "$command" ;;
  load) load "${images[@]}" ;;
  stop-api) stop kube-apiserver ;;
  start-api) start_api_again ;;
  *) usage ;;
esac
