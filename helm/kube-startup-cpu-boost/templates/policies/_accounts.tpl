{{/* The user names of our accounts that may write, as a list in CEL. The account of admission may write nothing. */}}
{{- define "startup-cpu-boost.policies.accounts" -}}
{{- $prefix := printf "system:serviceaccount:%s" (include "startup-cpu-boost.namespace" .) -}}
[
  '{{ $prefix }}:{{ include "startup-cpu-boost.serviceAccountName" (list . "controller") }}',
  '{{ $prefix }}:{{ include "startup-cpu-boost.fullname" . }}-revert-all'
]
{{- end }}
