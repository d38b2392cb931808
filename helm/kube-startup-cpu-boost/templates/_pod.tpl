{{/* Parts that the pods of both components share; each takes (list ROOT COMPONENT). */}}

{{- define "startup-cpu-boost.podMetadata" -}}
{{- $values := index (first .).Values (last .) -}}
labels:
  {{- include "startup-cpu-boost.selectorLabels" . | nindent 2 }}
  {{- /* Each key once, or what kustomize and others make of them is left to chance. */}}
  {{- with merge (dict) $values.podLabels (first .).Values.commonLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with $values.podAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* On different nodes and in different zones where that is possible, and never unscheduled for it. */}}
{{- define "startup-cpu-boost.scheduling" -}}
{{- $values := index (first .).Values (last .) -}}
{{- $selectorLabels := include "startup-cpu-boost.selectorLabels" . -}}
affinity:
  {{- if $values.affinity }}
  {{- toYaml $values.affinity | nindent 2 }}
  {{- else }}
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          labelSelector:
            matchLabels:
              {{- $selectorLabels | nindent 14 }}
  {{- end }}
topologySpreadConstraints:
  {{- if $values.topologySpreadConstraints }}
  {{- toYaml $values.topologySpreadConstraints | nindent 2 }}
  {{- else }}
  {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    matchLabelKeys: [pod-template-hash]
    labelSelector:
      matchLabels:
        {{- $selectorLabels | nindent 8 }}
  {{- end }}
  {{- end }}
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- end -}}

{{/*
Liveness fails only where the event loop stands still, an API server that is away restarts nobody. The
startup probe gives a slow node a minute. Readiness is asked often: a rollout waits for it.
*/}}
{{- define "startup-cpu-boost.probes" -}}
startupProbe:
  httpGet: { path: /livez, port: health }
  periodSeconds: 1
  timeoutSeconds: 5
  failureThreshold: 60
livenessProbe:
  httpGet: { path: /livez, port: health }
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: { path: /readyz, port: health }
  periodSeconds: 2
  timeoutSeconds: 5
  failureThreshold: 3
{{- end -}}
