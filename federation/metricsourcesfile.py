"""Read the file with the administrator's list of sources of metrics; `planning/waves/metricsources.py` parses it."""

from pathlib import Path

import yaml

from federation.apimachinery.errors import ConfigurationError
from federation.planning.waves.metricsources import NO_SOURCES, Sources, parse_sources


def read_sources(path: str) -> Sources:
    """Return the sources by name, none without a path; ConfigurationError for a file that cannot be read or used."""
    if not path:
        return NO_SOURCES
    setting = f"metric-sources-file {path}"
    try:
        document = yaml.load(Path(path).expanduser().read_bytes(), Loader=yaml.CSafeLoader)
    except OSError as error:
        raise ConfigurationError(f"{setting}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{setting}: not YAML: {error}") from error
    return parse_sources(document, setting=setting)
