# The image of the control plane: `docker build -t federation .`, and then docs/install.md.
# The first stage installs into a folder, the second one is Python, that folder, and no shell. Both have Python 3.11.
FROM python:3.11-bookworm AS build
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY federation federation
COPY plugins/federation_plugins plugins/federation_plugins
COPY migrations migrations
COPY examples/quickstart examples/quickstart
COPY examples/workloads examples/workloads
COPY tools/install.py tools/slim.py tools/
RUN PIP_NO_CACHE_DIR=1 python tools/install.py --target /opt/federation otel postgres \
 && python tools/slim.py /opt/federation \
 && sed -i '1s|^#!.*|#!/usr/bin/python3|' /opt/federation/bin/fedctl \
 && install -d -m 0700 /state

FROM gcr.io/distroless/python3-debian12:nonroot
LABEL org.opencontainers.image.title="federation" \
      org.opencontainers.image.description="One Kubernetes API in front of many clusters." \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/federation /opt/federation
COPY --from=build --chown=65532:65532 /state /var/lib/federation
# Only these two folders are written; the rest of the file system may be read-only.
VOLUME ["/var/lib/federation", "/tmp"]
ENV PATH=/opt/federation/bin:/usr/bin:/bin \
    PYTHONPATH=/opt/federation \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    KUBECONFIG=/var/lib/federation/kubeconfig \
    HOME=/tmp
USER 65532:65532
EXPOSE 7443
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s --retries=3 \
  CMD ["fedctl", "ready", "--server", "https://127.0.0.1:7443"]
ENTRYPOINT ["fedctl"]
CMD ["serve", "--dir=/var/lib/federation", "--host=0.0.0.0", "--log-format=json"]
