{{- /* The pod of the StatefulSet and of the Deployment: they differ in the volume `state` only. */ -}}
{{- define "federation.pod" -}}
metadata:
  labels:
    {{- include "federation.labels" . | nindent 4 }}
    {{- with .Values.podLabels }}{{ toYaml . | nindent 4 }}{{ end }}
  annotations:
    kubectl.kubernetes.io/default-container: federation
    {{- if .Values.audit.policy }}
    checksum/audit-policy: {{ toYaml .Values.audit.policy | sha256sum }}
    {{- end }}
    {{- if .Values.metricSources.sources }}
    checksum/metric-sources: {{ toYaml .Values.metricSources.sources | sha256sum }}
    {{- end }}
    {{- with .Values.podAnnotations }}{{ toYaml . | nindent 4 }}{{ end }}
spec:
  serviceAccountName: {{ include "federation.serviceAccount" . }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets: {{ toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  securityContext: {{ include "federation.securityContext" . | nindent 4 }}
  containers:
    - name: federation
      image: {{ include "federation.image" . | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args:
        - serve
        - --dir=/var/lib/federation
        - --host={{ .Values.listenAddress }}
        - --port=7443
        {{- if .Values.existingHost.kubeconfigSecret }}
        - --host-kubeconfig=/etc/federation/host/kubeconfig
        - --host-url={{ include "federation.hostURL" . }}
        {{- if .Values.existingHost.ui }}
        - --ui-port=7444
        {{- end }}
        {{- else }}
        - --advertise-url={{ include "federation.url" . }}
        {{- end }}
        - --log-level={{ .Values.logLevel }}
        - --log-format={{ .Values.logFormat }}
        {{- if .Values.existingHost.kubeconfigSecret }}
        {{- else if eq .Values.tls.source "own" }}
        {{- range include "federation.names" . | fromJsonArray }}
        - --tls-san={{ . }}
        {{- end }}
        {{- else }}
        - --tls-cert-file=/etc/federation/tls/tls.crt
        - --tls-key-file=/etc/federation/tls/tls.key
        {{- if .Values.tls.hasCA }}
        - --tls-ca-file=/etc/federation/tls/ca.crt
        {{- end }}
        {{- end }}
        {{- if .Values.encryption.secretName }}
        - --encryption-key-file=/etc/federation/encryption/keys
        {{- end }}
        {{- if .Values.audit.policy }}
        - --audit-policy-file=/etc/federation/audit/policy.yaml
        - --audit-log-path=-
        {{- end }}
        {{- range .Values.extraArgs }}
        - {{ . | quote }}
        {{- end }}
      env:
        {{- if not .Values.existingHost.kubeconfigSecret }}
        - name: FEDERATION_ADVERTISE_ADDRESS
          valueFrom: {fieldRef: {fieldPath: status.podIP}}
        {{- end }}
        {{- if eq .Values.store "postgresql" }}
        {{- $secret := include "federation.databaseSecret" . | fromJson }}
        - name: FEDERATION_STORE_URL
          valueFrom: {secretKeyRef: {name: {{ $secret.name }}, key: {{ $secret.key }}}}
        {{- end }}
        {{- if .Values.metricSources.sources }}
        {{- if .Values.settings.metric_sources_file }}
        {{- fail "settings.metric_sources_file: remove it, or metricSources.sources; there is one list of sources" }}
        {{- end }}
        - {name: FEDERATION_METRIC_SOURCES_FILE, value: /etc/federation/metric-sources/sources.yaml}
        {{- end }}
        {{- range $name, $value := .Values.settings }}
        - name: FEDERATION_{{ upper $name }}
          value: {{ kindIs "slice" $value | ternary (join "," $value) (kindIs "float64" $value | ternary (toJson $value) (toString $value)) | quote }}
        {{- end }}
        {{- with .Values.extraEnv }}{{ toYaml . | nindent 8 }}{{ end }}
      ports:
        - {name: https, containerPort: 7443, protocol: TCP}
        {{- if and .Values.existingHost.kubeconfigSecret .Values.existingHost.ui }}
        - {name: ui, containerPort: 7444, protocol: TCP}
        {{- end }}
      # The first start on a database of an older version upgrades it.
      startupProbe:
        httpGet: {path: /livez, port: https, scheme: HTTPS}
        periodSeconds: 2
        failureThreshold: 150
      livenessProbe:
        httpGet: {path: /livez, port: https, scheme: HTTPS}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        httpGet: {path: /readyz, port: https, scheme: HTTPS}
        periodSeconds: 5
        timeoutSeconds: 4
      resources: {{ toYaml .Values.resources | nindent 8 }}
      securityContext: {{ include "federation.containerSecurityContext" . | nindent 8 }}
      volumeMounts:
        - {name: state, mountPath: /var/lib/federation}
        - {name: tmp, mountPath: /tmp}
        {{- if .Values.existingHost.kubeconfigSecret }}
        - {name: host, mountPath: /etc/federation/host, readOnly: true}
        {{- end }}
        {{- if ne .Values.tls.source "own" }}
        - {name: tls, mountPath: /etc/federation/tls, readOnly: true}
        {{- end }}
        {{- if .Values.encryption.secretName }}
        - {name: encryption, mountPath: /etc/federation/encryption, readOnly: true}
        {{- end }}
        {{- if .Values.audit.policy }}
        - {name: audit, mountPath: /etc/federation/audit, readOnly: true}
        {{- end }}
        {{- if .Values.metricSources.sources }}
        - {name: metric-sources, mountPath: /etc/federation/metric-sources, readOnly: true}
        {{- if .Values.metricSources.secretName }}
        - {name: metric-credentials, mountPath: /etc/federation/metric-credentials, readOnly: true}
        {{- end }}
        {{- end }}
        {{- with .Values.extraVolumeMounts }}{{ toYaml . | nindent 8 }}{{ end }}
  volumes:
    {{- if eq .Values.store "postgresql" }}
    # The keys come from the database at each start.
    - {name: state, emptyDir: {sizeLimit: 64Mi}}
    {{- else if .Values.sqlite.existingClaim }}
    - {name: state, persistentVolumeClaim: {claimName: {{ .Values.sqlite.existingClaim }}}}
    {{- end }}
    {{- with .Values.existingHost.kubeconfigSecret }}
    - {name: host, secret: {secretName: {{ . }}, defaultMode: 0440, items: [{key: kubeconfig, path: kubeconfig}]}}
    {{- end }}
    - {name: tmp, emptyDir: {medium: Memory, sizeLimit: {{ .Values.temporaryBytes }}}}
    {{- if ne .Values.tls.source "own" }}
    - {name: tls, secret: {secretName: {{ include "federation.tlsSecret" . }}, defaultMode: 0440}}
    {{- end }}
    {{- with .Values.encryption }}
    {{- if .secretName }}
    - {name: encryption, secret: {secretName: {{ .secretName }}, defaultMode: 0440, items: [{key: {{ .key }}, path: keys}]}}
    {{- end }}
    {{- end }}
    {{- if .Values.audit.policy }}
    - {name: audit, configMap: {name: {{ include "federation.fullname" . }}-audit}}
    {{- end }}
    {{- if .Values.metricSources.sources }}
    - {name: metric-sources, configMap: {name: {{ include "federation.fullname" . }}-metric-sources}}
    {{- with .Values.metricSources.secretName }}
    - {name: metric-credentials, secret: {secretName: {{ . }}, defaultMode: 0440}}
    {{- end }}
    {{- end }}
    {{- with .Values.extraVolumes }}{{ toYaml . | nindent 4 }}{{ end }}
  topologySpreadConstraints:
    {{- if .Values.topologySpreadConstraints }}
    {{- toYaml .Values.topologySpreadConstraints | nindent 4 }}
    {{- else }}
    {{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
    - maxSkew: 1
      topologyKey: {{ . }}
      whenUnsatisfiable: ScheduleAnyway
      labelSelector: {matchLabels: {{ include "federation.selector" $ | fromYaml | toJson }}}
    {{- end }}
    {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector: {{ toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations: {{ toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity: {{ toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
