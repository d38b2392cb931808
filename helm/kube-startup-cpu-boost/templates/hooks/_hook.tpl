{{/*
Parts of the hooks: a Job that runs one command of the program, and a ServiceAccount with just the
rights for it. All of it lives only while the hook runs; a Job that failed stays for a day, to be read.
*/}}

{{/* (list EVENTS WEIGHT) */}}
{{- define "startup-cpu-boost.hookAnnotations" -}}
helm.sh/hook: {{ first . }}
helm.sh/hook-weight: {{ last . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end -}}

{{/* (list ROOT COMMAND EVENTS): the ServiceAccount, and the binding to the ClusterRole of the same name. */}}
{{- define "startup-cpu-boost.hookAccount" -}}
{{- $root := index . 0 -}}
{{- $command := index . 1 -}}
{{- $events := index . 2 -}}
{{- $name := printf "%s-%s" (include "startup-cpu-boost.fullname" $root) $command -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ $name | quote }}
  namespace: {{ include "startup-cpu-boost.namespace" $root | quote }}
  labels:
    {{- include "startup-cpu-boost.labels" (list $root $command) | nindent 4 }}
  annotations:
    {{- include "startup-cpu-boost.hookAnnotations" (list $events "-10") | nindent 4 }}
automountServiceAccountToken: false
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $name | quote }}
  labels:
    {{- include "startup-cpu-boost.labels" (list $root $command) | nindent 4 }}
  annotations:
    {{- include "startup-cpu-boost.hookAnnotations" (list $events "-5") | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ $name | quote }}
subjects:
  - kind: ServiceAccount
    name: {{ $name | quote }}
    namespace: {{ include "startup-cpu-boost.namespace" $root | quote }}
{{- end -}}

{{/*
(dict "root" ROOT "command" COMMAND "events" EVENTS "args" ARGS "env" ENV): the Job. It ends before
Helm's own 5 minutes are over, so that Helm tells why it failed and not only that time is up.
*/}}
{{- define "startup-cpu-boost.hookJob" -}}
{{- $root := .root -}}
{{- $name := printf "%s-%s" (include "startup-cpu-boost.fullname" $root) .command -}}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ $name | quote }}
  namespace: {{ include "startup-cpu-boost.namespace" $root | quote }}
  labels:
    {{- include "startup-cpu-boost.labels" (list $root .command) | nindent 4 }}
  annotations:
    {{- include "startup-cpu-boost.hookAnnotations" (list .events "0") | nindent 4 }}
    # From Helm 3.18 on.
    helm.sh/hook-output-log-policy: hook-failed
spec:
  activeDeadlineSeconds: 280
  ttlSecondsAfterFinished: 86400
  backoffLimit: 3
  # The command has tried again by itself; what is worth another pod is a node that went away.
  podFailurePolicy:
    rules:
      - action: FailJob
        onExitCodes: { operator: In, values: [1, 2] }
  template:
    metadata:
      labels:
        {{- include "startup-cpu-boost.selectorLabels" (list $root .command) | nindent 8 }}
    spec:
      restartPolicy: Never
      serviceAccountName: {{ $name | quote }}
      automountServiceAccountToken: true
      {{- with $root.Values.imagePullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      securityContext:
        {{- include "startup-cpu-boost.podSecurityContext" $root | nindent 8 }}
      containers:
        - name: {{ .command }}
          image: {{ include "startup-cpu-boost.image" $root | quote }}
          imagePullPolicy: {{ $root.Values.image.pullPolicy }}
          args: {{ concat (list .command) .args | toJson }}
          {{- with .env }}
          env:
            {{- . | nindent 12 }}
          {{- end }}
          terminationMessagePolicy: FallbackToLogsOnError
          resources:
            requests: { cpu: 50m, memory: 64Mi }
            limits: { memory: 256Mi }
          securityContext:
            {{- include "startup-cpu-boost.containerSecurityContext" $root | nindent 12 }}
      {{- with $root.Values.controller.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $root.Values.controller.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $root.Values.controller.priorityClassName }}
      priorityClassName: {{ . | quote }}
      {{- end }}
{{- end -}}
