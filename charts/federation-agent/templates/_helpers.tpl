{{- /* The account of the control plane and its role have fixed names, so the agent has the one namespace that goes with them. */ -}}
{{- define "agent.namespace" -}}
{{- if ne .Release.Namespace "kube-admiral-system" -}}
{{- fail "install the agent in the namespace kube-admiral-system: helm install … --namespace kube-admiral-system --create-namespace" -}}
{{- end -}}
{{ .Release.Namespace }}
{{- end -}}

{{- define "agent.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "agent.labels" -}}
{{ include "agent.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end -}}

{{- define "agent.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ default $.Chart.AppVersion .tag }}
{{- end -}}
{{- end -}}
{{- end -}}
