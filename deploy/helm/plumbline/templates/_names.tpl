{{/* The services, in the order in which a trace passes them. */}}
{{- define "plumbline.services" -}}
ingest verifier drift exporter console webhooks
{{- end }}

{{- define "plumbline.fullname" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 48 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 48 | trimSuffix "-" }}{{ end }}
{{- end }}

{{/* The name of the Service of a service's operators' interface. Argument: root and name. */}}
{{- define "plumbline.admin" -}}
{{ include "plumbline.fullname" .root }}-{{ .name }}-admin
{{- end }}

{{/* Labels by which a service's pods are found: they never change. Argument: root and name. */}}
{{- define "plumbline.selector" -}}
app.kubernetes.io/name: plumbline
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .name }}
{{- end }}

{{- define "plumbline.labels" -}}
{{ include "plumbline.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{- define "plumbline.image" -}}
{{- with .Values.image }}{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}{{ end }}
{{- end }}
