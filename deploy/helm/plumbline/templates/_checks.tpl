{{/* "true" if a volume of the exporter can be on one node only. */}}
{{- define "plumbline.oneNode" -}}
{{- range $kind := list "data" "bundles" }}
{{- if not (has "ReadWriteMany" (index $.Values.exporter $kind).accessModes) }}true{{ end }}
{{- end }}
{{- end }}
