{{/*
Names, labels and other parts that several templates share. Those of one component take a list of the
root and the component: include "startup-cpu-boost.labels" (list . "admission").
*/}}

{{/* Leaves room for the suffixes of object names, which must fit into 63 characters. */}}
{{- define "startup-cpu-boost.fullname" -}}
{{- $name := .Values.nameOverride | default "startup-cpu-boost" -}}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- /* The name of a Service has no dots and begins with a letter; that of a release may have both otherwise. */ -}}
{{- $full = replace "." "-" $full -}}
{{- $full = ternary (printf "boost-%s" $full) $full (regexMatch "^[0-9]" $full) -}}
{{- .Values.fullnameOverride | default $full | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "startup-cpu-boost.namespace" -}}
{{- .Release.Namespace -}}
{{- end -}}

{{- define "startup-cpu-boost.image" -}}
{{- with .Values.image -}}
{{- .repository -}}
{{- if or .tag (not .digest) -}}:{{ .tag | default $.Chart.AppVersion }}{{- end -}}
{{- with .digest -}}@{{ . }}{{- end -}}
{{- end -}}
{{- end -}}

{{/* Of a Deployment's pods: what never changes in the life of a release. */}}
{{- define "startup-cpu-boost.selectorLabels" -}}
{{- $root := first . -}}
app.kubernetes.io/name: {{ $root.Values.nameOverride | default "startup-cpu-boost" | quote }}
app.kubernetes.io/instance: {{ $root.Release.Name | quote }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{/*
Takes further labels of the object as a third item. Each key is there once, or kustomize refuses it: the
object's own labels come before commonLabels.
*/}}
{{- define "startup-cpu-boost.labels" -}}
{{- $root := first . -}}
{{- $labels := dict -}}
{{- range prepend (slice . 2) $root.Values.commonLabels -}}
{{- range $key, $value := . -}}
{{- $_ := set $labels $key $value -}}
{{- end -}}
{{- end -}}
{{ include "startup-cpu-boost.selectorLabels" . }}
app.kubernetes.io/part-of: startup-cpu-boost
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- with $labels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "startup-cpu-boost.serviceAccountName" -}}
{{- $root := first . -}}
{{- $component := last . -}}
{{- $account := (index $root.Values $component).serviceAccount -}}
{{- if $account.create -}}
{{- $account.name | default (printf "%s-%s" (include "startup-cpu-boost.fullname" $root) $component) -}}
{{- else -}}
{{- $account.name -}}
{{- end -}}
{{- end -}}

{{/* What every container of ours may do: nothing but run. */}}
{{- define "startup-cpu-boost.containerSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- define "startup-cpu-boost.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{/* The Lease's name is the program's own. */}}
{{- define "startup-cpu-boost.leaseName" -}}
startup-cpu-boost-controller
{{- end -}}

{{- define "startup-cpu-boost.caSecretName" -}}
{{ include "startup-cpu-boost.fullname" . }}-ca
{{- end -}}

{{- define "startup-cpu-boost.servingSecretName" -}}
{{ include "startup-cpu-boost.fullname" . }}-serving
{{- end -}}

{{- define "startup-cpu-boost.serviceName" -}}
{{ include "startup-cpu-boost.fullname" . }}-webhook
{{- end -}}
