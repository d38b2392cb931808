{{/* Parts of the webhook configurations. */}}

{{- define "startup-cpu-boost.providedSecretName" -}}
{{- if eq .Values.certificates.mode "cert-manager" -}}
{{ include "startup-cpu-boost.fullname" . }}-serving-tls
{{- else -}}
{{ required "certificates.provided.secretName must name the Secret with tls.crt and tls.key" .Values.certificates.provided.secretName }}
{{- end -}}
{{- end -}}

{{/* Where cert-manager fills in the caBundle; in the self-managed mode the controllers do. */}}
{{- define "startup-cpu-boost.caAnnotations" -}}
{{- if eq .Values.certificates.mode "cert-manager" -}}
annotations:
  cert-manager.io/inject-ca-from: {{ include "startup-cpu-boost.namespace" . }}/{{ include "startup-cpu-boost.fullname" . }}-serving
{{- end -}}
{{- end -}}

{{/* (list ROOT PATH) */}}
{{- define "startup-cpu-boost.clientConfig" -}}
{{- $root := first . -}}
service:
  name: {{ include "startup-cpu-boost.serviceName" $root }}
  namespace: {{ include "startup-cpu-boost.namespace" $root | quote }}
  path: {{ last . }}
  port: 443
{{- if eq $root.Values.certificates.mode "provided" }}
caBundle: {{ required "certificates.provided.caBundle must be the PEM of the CA that signed the certificate" $root.Values.certificates.provided.caBundle | b64enc }}
{{- end }}
{{- end -}}
