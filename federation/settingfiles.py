"""Read the files with lists of the administrator's: sources of metrics, and providers of credentials for clusters."""

from pathlib import Path
from typing import Any

import yaml

from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.yamltext import load_yaml
from federation.planning.clusters.accessproviders import NO_PROVIDERS, Providers, parse_providers
from federation.planning.waves.metricsources import NO_SOURCES, Sources, parse_sources


def read_sources(path: str) -> Sources:
    """Return the sources by name, none without a path; ConfigurationError for a file that cannot be read or used."""
    setting = f"metric-sources-file {path}"
    return parse_sources(_document(path, setting), setting=setting) if path else NO_SOURCES


def read_providers(path: str) -> Providers:
    """Return the providers by name, none without a path; ConfigurationError for a file that cannot be read or used."""
    setting = f"cluster-providers-file {path}"
    return parse_providers(_document(path, setting), setting=setting) if path else NO_PROVIDERS


def _document(path: str, setting: str) -> Any:
    try:
        return load_yaml(Path(path).expanduser().read_bytes())
    except OSError as error:
        raise ConfigurationError(f"{setting}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{setting}: not YAML: {error}") from error
