{{- define "federation.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "federation.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "federation.labels" -}}
{{ include "federation.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end -}}

{{- define "federation.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ default $.Chart.AppVersion .tag }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "federation.serviceAccount" -}}
{{- default (include "federation.fullname" .) .Values.serviceAccount.name -}}
{{- end -}}

{{- define "federation.serviceHost" -}}
{{ include "federation.fullname" . }}.{{ .Release.Namespace }}.svc
{{- end -}}

{{- define "federation.url" -}}
{{- if .Values.advertiseURL -}}
{{ .Values.advertiseURL }}
{{- else if eq (int .Values.service.port) 443 -}}
https://{{ include "federation.serviceHost" . }}
{{- else -}}
https://{{ include "federation.serviceHost" . }}:{{ .Values.service.port }}
{{- end -}}
{{- end -}}

{{- /* The DNS names and addresses of the certificate, as a JSON list. */ -}}
{{- define "federation.names" -}}
{{- $host := include "federation.serviceHost" . -}}
{{- $short := list (include "federation.fullname" .) (printf "%s.%s" (include "federation.fullname" .) .Release.Namespace) -}}
{{- $advertised := list -}}
{{- with .Values.advertiseURL -}}
{{- $advertised = list (regexReplaceAll ":[0-9]+$" (urlParse . | dig "host" "") "" | trimPrefix "[" | trimSuffix "]") -}}
{{- end -}}
{{- concat $short (list $host (printf "%s.cluster.local" $host)) $advertised .Values.tls.names | uniq | toJson -}}
{{- end -}}

{{- define "federation.tlsSecret" -}}
{{- if eq .Values.tls.source "certManager" -}}
{{ include "federation.fullname" . }}-tls
{{- else if eq .Values.tls.source "secret" -}}
{{ required "tls.secretName: name the Secret with the certificate, or set tls.source to own or certManager" .Values.tls.secretName }}
{{- end -}}
{{- end -}}

{{- /* Name and key of the Secret with the database's URL, as JSON. */ -}}
{{- define "federation.databaseSecret" -}}
{{- with .Values.postgresql -}}
{{- if and .url .existingSecret.name -}}
{{- fail "postgresql.url and postgresql.existingSecret.name exclude each other: remove one of them" -}}
{{- else if .existingSecret.name -}}
{{- dict "name" .existingSecret.name "key" .existingSecret.key | toJson -}}
{{- else if .url -}}
{{- dict "name" (printf "%s-database" (include "federation.fullname" $)) "key" "url" | toJson -}}
{{- else -}}
{{- fail "postgresql: set url, or existingSecret.name to the name of a Secret that has the URL" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "federation.securityContext" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "federation.containerSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}
