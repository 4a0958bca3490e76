{{/* The settings of a service, as its configuration file: those of the chart, and those of the values. Argument: root and name. */}}
{{- define "plumbline.config" -}}
{{- $v := .root.Values -}}
{{- $own := index $v .name -}}
{{- $c := dict "tenant" $v.tenant "admin_listen" "0.0.0.0:9100" "nice" 0 "drain_budget" (printf "%ds" (int $v.drainSeconds)) -}}
{{- if ne .name "console" -}}{{- include "plumbline.config.broker" (dict "c" $c "v" $v "name" .name) -}}{{- end -}}
{{- $database := ternary $v.database.reader $v.database.service (has .name (list "ingest" "console")) -}}
{{- if and $v.database.cluster $database.existingSecret (ne .name "webhooks") -}}{{- $_ := set $c "clickhouse_cluster" $v.database.cluster -}}{{- end -}}
{{- if and $v.database.allowUnsafe (has .name (list "verifier" "drift" "exporter")) -}}{{- $_ := set $c "clickhouse_allow_unsafe" true -}}{{- end -}}
{{- if has .name (list "ingest" "console") -}}
  {{- $_ := set $c "token_file" (printf "/etc/plumbline/tokens/%s" $v.tokens.key) -}}
  {{- if $own.tls.existingSecret -}}
    {{- $_ := set $c "tls_cert_file" "/etc/plumbline/tls/tls.crt" -}}
    {{- $_ := set $c "tls_key_file" "/etc/plumbline/tls/tls.key" -}}
  {{- end -}}
  {{- if $own.readBundles -}}{{- $_ := set $c "bundle_dir" "/var/lib/plumbline/bundles/sealed" -}}{{- end -}}
{{- end -}}
{{- if eq .name "ingest" -}}
  {{- $_ := set $c "listen" "0.0.0.0:8080" -}}
  {{- $_ := set $c "handshake_key_file" "/etc/plumbline/keys/handshake.key" -}}
  {{- $_ := set $c "micro_key_file" "/etc/plumbline/keys/micro.key" -}}
  {{- if $own.otlpGrpc -}}{{- $_ := set $c "otlp_grpc_listen" "0.0.0.0:4317" -}}{{- end -}}
  {{- if $own.tls.clientCASecret -}}{{- $_ := set $c "tls_client_ca_file" "/etc/plumbline/client-ca/ca.crt" -}}{{- end -}}
{{- else if eq .name "console" -}}
  {{- $_ := set $c "listen" "0.0.0.0:8081" -}}
  {{- if not (hasKey $own.settings "service_url") -}}
    {{- $urls := list -}}
    {{- range $name := splitList " " (include "plumbline.services" .root) -}}
      {{- if and (ne $name "console") (index $v $name).enabled -}}
        {{- $urls = append $urls (printf "dns+http://%s:9100" (include "plumbline.admin" (dict "root" $.root "name" $name))) -}}
      {{- end -}}
    {{- end -}}
    {{- if $urls -}}{{- $_ := set $c "service_url" $urls -}}{{- end -}}
  {{- end -}}
{{- else if eq .name "exporter" -}}
  {{- $_ := set $c "data" "/var/lib/plumbline/data/exporter" -}}
  {{- $_ := set $c "bundle_dir" "/var/lib/plumbline/bundles/sealed" -}}
  {{- if $own.s3.existingSecret -}}{{- $_ := set $c "s3_credentials_file" "/etc/plumbline/s3/credentials" -}}{{- end -}}
{{- else if eq .name "webhooks" -}}
  {{- $_ := set $c "webhooks_file" "/etc/plumbline/webhooks/webhooks.yaml" -}}
{{- end -}}
{{- merge $c $own.settings $v.settings | toYaml -}}
{{- end }}

{{/* Adds the settings of the broker to c. */}}
{{- define "plumbline.config.broker" -}}
{{- $b := .v.broker -}}
{{- $_ := set .c "nats_url" $b.url -}}
{{- $_ := set .c "nats_replicas" (int $b.replicas) -}}
{{- if $b.monitorUrl -}}{{- $_ := set .c "nats_monitor_url" $b.monitorUrl -}}{{- end -}}
{{- if $b.allowUnsafe -}}{{- $_ := set .c "nats_allow_unsafe" true -}}{{- end -}}
{{- with ternary "_INBOX_service" $b.inboxPrefix (eq $b.login "nkeys") -}}{{- $_ := set $.c "nats_inbox_prefix" (printf "%s.%s" . $.name) -}}{{- end -}}
{{- if eq $b.login "nkeys" -}}
  {{- $_ := set .c "nats_nkey_seed_file" (printf "/etc/plumbline/broker/%s.nk" .name) -}}
{{- else if eq $b.login "credentials" -}}
  {{- $_ := set .c "nats_credentials_file" (printf "/etc/plumbline/broker/%s.creds" .name) -}}
{{- end -}}
{{- if $b.tls.existingSecret -}}
  {{- $_ := set .c "nats_ca_file" "/etc/plumbline/broker-tls/ca.crt" -}}
  {{- if $b.tls.clientCertificate -}}
    {{- $_ := set .c "nats_cert_file" "/etc/plumbline/broker-tls/tls.crt" -}}
    {{- $_ := set .c "nats_key_file" "/etc/plumbline/broker-tls/tls.key" -}}
  {{- end -}}
{{- end -}}
{{- end }}
