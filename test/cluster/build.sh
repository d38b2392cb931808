#!/usr/bin/env bash
# Builds the cluster's programs from the Go modules beside this script, once per version.
# usage: build.sh [--check] [TOOL...]    (default: all but helm)
# The folder goes to standard output. --check builds nothing: it fails where something is missing.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

module_version() { awk -v path="$2" '$1 == path { print $2; exit }' "$here/$1/go.mod"; } # MODULE PATH
version=$(module_version tools k8s.io/kubernetes)
out=${XDG_CACHE_HOME:-$HOME/.cache}/startup-cpu-boost/k8s-$version/bin

declare -A package=(
  [etcd]=go.etcd.io/etcd/server/v3
  [kube-apiserver]=k8s.io/kubernetes/cmd/kube-apiserver
  [kube-controller-manager]=k8s.io/kubernetes/cmd/kube-controller-manager
  [kube-proxy]=k8s.io/kubernetes/cmd/kube-proxy
  [kube-scheduler]=k8s.io/kubernetes/cmd/kube-scheduler
  [kubectl]=k8s.io/kubernetes/cmd/kubectl
  [kubelet]=k8s.io/kubernetes/cmd/kubelet
  [helm]=helm.sh/helm/v4/cmd/helm
)
everything=(etcd kube-apiserver kube-controller-manager kube-proxy kube-scheduler kubectl kubelet)

say() { echo "build: $*" >&2; }

module_of() { if [[ $1 == helm ]]; then echo helm; else echo tools; fi; }

# A tool is current when it stands in $out with the hash of the module it was built from.
stamp_of() { cat "$here/$(module_of "$1")"/go.{mod,sum} | sha256sum | cut -d' ' -f1; }
is_current() { [[ -x $out/$1 && $(cat "$out/.$1" 2>/dev/null) == "$(stamp_of "$1")" ]]; }

# The version stamps that a release build sets; client-go's goes into the user agent.
version_flags() {
  local minor=${version#v*.} flags="-s -w" pkg
  for pkg in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    flags+=" -X $pkg.gitVersion=$version -X $pkg.gitMajor=1 -X $pkg.gitMinor=${minor%%.*}"
    flags+=" -X $pkg.gitCommit=none -X $pkg.gitTreeState=clean"
  done
  echo "$flags"
}

build() {
  local tool=$1 temp=$out/.new-$1-$$ flags="-s -w" begin=$SECONDS
  case $tool in
    kube*) flags=$(version_flags) ;;
    helm) flags+=" -X helm.sh/helm/v4/internal/version.version=$(module_version helm helm.sh/helm/v4)" ;;
  esac
  say "$tool: building"
  CGO_ENABLED=0 GOWORK=off go build -C "$here/$(module_of "$tool")" -mod=readonly -buildvcs=false \
    -ldflags "$flags" -o "$temp" "${package[$tool]}"
  mv "$temp" "$out/$tool"
  stamp_of "$tool" >"$out/.$tool"
  say "$tool: built in $((SECONDS - begin)) s"
}

check=
[[ ${1:-} != --check ]] || { check=yes; shift; }
tools=("$@")
((${#tools[@]})) || tools=("${everything[@]}")
missing=()
for tool in "${tools[@]}"; do
  [[ -n ${package[$tool]:-} ]] || { say "unknown tool $tool; one of: ${!package[*]}"; exit 2; }
  is_current "$tool" || missing+=("$tool")
done
if ((${#missing[@]})); then
  [[ -z $check ]] || { say "not built: ${missing[*]}"; exit 1; }
  [[ -n $(type -P go) ]] || { say "go is missing; it builds ${missing[*]}"; exit 1; }
  mkdir -p "$out"
  exec 9>"$out/.lock"
  flock --nonblock 9 || { say "another build is at work; waiting for it"; flock 9; }
  trap 'rm -f "$out"/.new-*-$$' EXIT
  for tool in "${missing[@]}"; do is_current "$tool" || build "$tool"; done
fi
say "${tools[*]}: ready ($version)"
echo "$out"
