{{/* What a container may do: nothing but its work. */}}
{{- define "plumbline.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* What every pod has. The user is the one of the Dockerfile. The group of a volume is set once, when it is empty: later
     it would open the key files to the group, and the services refuse such a key. */}}
{{- define "plumbline.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.serviceAccountName }}
serviceAccountName: {{ . }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- end }}

{{/* Where a pod may run. Argument: the values that say so. */}}
{{- define "plumbline.placement" -}}
{{- range $key := list "nodeSelector" "tolerations" "affinity" "topologySpreadConstraints" }}
{{- with index $ $key }}
{{ $key }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}

{{/* The environment: what is secret and not a file, and what Go must know. Argument: root and name. */}}
{{- define "plumbline.env" -}}
{{- $v := .root.Values -}}
{{- $user := get (dict "ingest" "reader" "console" "reader" "verifier" "service" "drift" "service" "exporter" "service" "operator" "admin") .name -}}
{{- if $user -}}
{{- with index $v.database $user }}
{{- if .existingSecret }}
- name: PLUMBLINE_CLICKHOUSE_DSN
  valueFrom: {secretKeyRef: {name: {{ .existingSecret }}, key: {{ .key }}}}
{{- end }}
{{- end }}
{{- end }}
{{- if and (eq .name "console") $v.database.letters.existingSecret }}
- name: PLUMBLINE_LETTERS_DSN
  valueFrom: {secretKeyRef: {name: {{ $v.database.letters.existingSecret }}, key: {{ $v.database.letters.key }}}}
{{- end }}
{{- if and (eq $v.broker.login "password") (ne .name "console") }}
- name: PLUMBLINE_NATS_USER
  valueFrom: {secretKeyRef: {name: {{ $v.broker.existingSecret }}, key: user}}
- name: PLUMBLINE_NATS_PASSWORD
  valueFrom: {secretKeyRef: {name: {{ $v.broker.existingSecret }}, key: password}}
{{- end }}
{{- with (index $v .name | default dict).goMemoryLimit }}
- name: GOMEMLIMIT
  value: {{ . }}
{{- end }}
{{- end }}

{{/* The files of the connections, as a list of {name, path, volume}. Argument: root and name. Key by key, so that a service gets no other one's login. */}}
{{- define "plumbline.connectionFiles" -}}
{{- $v := .root.Values -}}
{{- $ending := get (dict "nkeys" "nk" "credentials" "creds") $v.broker.login -}}
{{- if and $ending (ne .name "console") }}
- name: broker
  path: /etc/plumbline/broker
  volume: {secret: {secretName: {{ $v.broker.existingSecret }}, defaultMode: 0440, items: [{key: {{ .name }}.{{ $ending }}, path: {{ .name }}.{{ $ending }}}]}}
{{- end }}
{{- if and $v.broker.tls.existingSecret (ne .name "console") }}
- name: broker-tls
  path: /etc/plumbline/broker-tls
  volume: {secret: {secretName: {{ $v.broker.tls.existingSecret }}, defaultMode: 0440}}
{{- end }}
{{- if and $v.database.tls.existingSecret (ne .name "webhooks") }}
- name: database-tls
  path: /etc/plumbline/database-tls
  volume: {secret: {secretName: {{ $v.database.tls.existingSecret }}, defaultMode: 0440}}
{{- end }}
{{- end }}

{{/* All files of a service, in the same form; writable where it says so. */}}
{{- define "plumbline.files" -}}
{{- $v := .root.Values -}}
{{- $own := index $v .name -}}
- name: config
  path: /etc/plumbline/config
  volume: {configMap: {name: {{ include "plumbline.fullname" .root }}-{{ .name }}, defaultMode: 0444}}
{{- include "plumbline.connectionFiles" . }}
{{- if has .name (list "ingest" "console") }}
- name: tokens
  path: /etc/plumbline/tokens
  volume: {secret: {secretName: {{ $v.tokens.existingSecret }}, defaultMode: 0440, items: [{key: {{ $v.tokens.key }}, path: {{ $v.tokens.key }}}]}}
{{- if $own.tls.existingSecret }}
- name: tls
  path: /etc/plumbline/tls
  volume: {secret: {secretName: {{ $own.tls.existingSecret }}, defaultMode: 0440}}
{{- end }}
{{- if $own.readBundles }}
- name: bundles
  path: /var/lib/plumbline/bundles
  volume: {persistentVolumeClaim: {claimName: {{ include "plumbline.claim" (dict "root" .root "kind" "bundles") }}, readOnly: true}}
{{- end }}
{{- end }}
{{- if eq .name "ingest" }}
- name: keys
  path: /etc/plumbline/keys
  volume: {emptyDir: {medium: Memory, sizeLimit: 1Mi}}
{{- if $own.tls.clientCASecret }}
- name: client-ca
  path: /etc/plumbline/client-ca
  volume: {secret: {secretName: {{ $own.tls.clientCASecret }}, defaultMode: 0440}}
{{- end }}
{{- end }}
{{- if eq .name "exporter" }}
- name: data
  path: /var/lib/plumbline/data
  writable: true
  volume: {persistentVolumeClaim: {claimName: {{ include "plumbline.claim" (dict "root" .root "kind" "data") }}}}
- name: bundles
  path: /var/lib/plumbline/bundles
  writable: true
  volume: {persistentVolumeClaim: {claimName: {{ include "plumbline.claim" (dict "root" .root "kind" "bundles") }}}}
{{- if $own.s3.existingSecret }}
- name: s3
  path: /etc/plumbline/s3
  volume: {secret: {secretName: {{ $own.s3.existingSecret }}, defaultMode: 0440}}
{{- end }}
{{- end }}
{{- if eq .name "webhooks" }}
- name: webhooks
  path: /etc/plumbline/webhooks
  volume: {secret: {secretName: {{ $own.existingSecret }}, defaultMode: 0440}}
{{- end }}
{{- if $own.files.secret }}
- name: files
  path: /etc/plumbline/files
  volume: {secret: {secretName: {{ $own.files.secret }}, defaultMode: 0440}}
{{- else if $own.files.configMap }}
- name: files
  path: /etc/plumbline/files
  volume: {configMap: {name: {{ $own.files.configMap }}, defaultMode: 0444}}
{{- end }}
{{- end }}

{{/* The name of a volume of the exporter. Argument: root and kind. */}}
{{- define "plumbline.claim" -}}
{{- $given := (index .root.Values.exporter .kind).existingClaim -}}
{{- $given | default (printf "%s-%s" (include "plumbline.fullname" .root) .kind) -}}
{{- end }}
