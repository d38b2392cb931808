{{/*
Environment of the processes. A key of .Values.settings is the variable of docs/settings.md in camel
case: mgrCheckInterval is MGR_CHECK_INTERVAL.
*/}}

{{- define "startup-cpu-boost.settingsOf" -}}
both: [zapLogLevel, boostGuaranteed]
admission: [webhookDrainSeconds, noControllerGraceSeconds, allowPreemption, removeLimits]
controller:
  - leaseDurationSeconds
  - leaseRenewDeadlineSeconds
  - leaseRetrySeconds
  - mgrCheckInterval
  - maximumBoostSeconds
  - boostDeletedGraceSeconds
  - unschedulableGraceMs
  - revertAnyway
  - kubeletConfirmSeconds
  - unlabelledCheckSeconds
  - raiseInPlace
  - catchUp
  - catchUpSeconds
  - catchUpBoostLagSeconds
selfManaged: [webhookDnsNames, caLifetimeSeconds, servingLifetimeSeconds, caPublishWaitSeconds]
revertAll: [revertAnyway, kubeletConfirmSeconds]
{{- end -}}

{{/* Numbers come out of values files as floats, which print as 3.1536e+07. */}}
{{- define "startup-cpu-boost.settingText" -}}
{{- if kindIs "float64" . -}}{{ int64 . }}
{{- else if kindIs "slice" . -}}{{ join "," . }}
{{- else -}}{{ . }}
{{- end -}}
{{- end -}}

{{/* (list ROOT GROUP): the variables of one group above. */}}
{{- define "startup-cpu-boost.settings" -}}
{{- $root := first . -}}
{{- $keys := index (include "startup-cpu-boost.settingsOf" $root | fromYaml) (last .) -}}
{{- range $key := $keys }}
- name: {{ $key | snakecase | upper }}
  value: {{ include "startup-cpu-boost.settingText" (index $root.Values.settings $key) | quote }}
{{- end }}
{{- end -}}

{{/* (list ROOT COMPONENT): the whole environment of a process. */}}
{{- define "startup-cpu-boost.env" -}}
{{ include "startup-cpu-boost.ownEnv" . }}
{{- with (index (first .).Values (last .)).extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* (list ROOT COMPONENT): what the chart sets of it. */}}
{{- define "startup-cpu-boost.ownEnv" -}}
{{- $root := first . -}}
{{- $component := last . -}}
{{- $isSelfManaged := eq $root.Values.certificates.mode "self-managed" -}}
- name: POD_NAMESPACE
  value: {{ include "startup-cpu-boost.namespace" $root | quote }}
- name: HEALTH_PROBE_BIND_ADDR
  value: {{ printf ":%d" (int $root.Values.ports.health) | quote }}
- name: METRICS_PROBE_BIND_ADDR
  value: {{ printf ":%d" (int $root.Values.ports.metrics) | quote }}
- name: CERT_MODE
  value: {{ ternary "self-managed" "provided" $isSelfManaged }}
{{- if $isSelfManaged }}
- name: SERVING_SECRET
  value: {{ include "startup-cpu-boost.servingSecretName" $root }}
{{- end }}
{{- if eq $component "admission" }}
- name: WEBHOOK_PORT
  value: {{ int $root.Values.ports.webhook | quote }}
{{- if not $isSelfManaged }}
- name: CERT_DIR
  value: {{ include "startup-cpu-boost.certificateFolder" $root }}
{{- end }}
{{- else }}
- name: WEBHOOK_CONFIGURATION
  value: {{ include "startup-cpu-boost.fullname" $root | quote }}
- name: CATCH_UP_EXCLUDED_NAMESPACES
  value: {{ include "startup-cpu-boost.excludedNamespaces" $root | fromYamlArray | join "," }}
{{- if $isSelfManaged }}
- name: CA_SECRET
  value: {{ include "startup-cpu-boost.caSecretName" $root }}
- name: WEBHOOK_SERVICE
  value: {{ include "startup-cpu-boost.serviceName" $root }}
{{- include "startup-cpu-boost.settings" (list $root "selfManaged") }}
{{- end }}
{{- end }}
{{- include "startup-cpu-boost.settings" (list $root "both") }}
{{- include "startup-cpu-boost.settings" (list $root $component) }}
{{- end -}}

{{/* Where the certificate is mounted that somebody provides. */}}
{{- define "startup-cpu-boost.certificateFolder" -}}
/certificates
{{- end -}}

{{/* Beside our own namespace, which the processes know. */}}
{{- define "startup-cpu-boost.excludedNamespaces" -}}
{{ concat (list "kube-system" "kube-node-lease") .Values.webhook.excludedNamespaces | uniq | toYaml }}
{{- end -}}
