"""What the build of the real Kubernetes says when it fails. `.ci/run` continues after `CannotBuild` only."""

import pytest
from tests.kubernetes.build import CannotBuild, _failure

GET = 'go.etcd.io/etcd/server/v3@v3.6.8: Get "https://proxy.example/go.etcd.io/etcd/server/v3/@v/v3.6.8.zip": '


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        (GET + "dial tcp 192.0.2.1:443: connect: connection refused", "module proxy cannot be reached"),
        (GET + "dial tcp: lookup proxy.example on 192.0.2.53:53: no such host", "module proxy cannot be reached"),
        (GET + "net/http: TLS handshake timeout", "module proxy cannot be reached"),
        ("k8s.io/api@v0.36.3: reading https://proxy.example/x.zip: 503 Service Unavailable", "module proxy"),
        ("module lookup disabled by GOPROXY=off", "module proxy cannot be reached"),
        ("go: go.mod requires go >= 1.26.0 (running go 1.24.1; GOTOOLCHAIN=local)", "Go 1.24.1 is too old"),
    ],
)
def test_a_machine_that_cannot_build_is_no_failure(printed: str, said: str) -> None:
    failure = _failure("go build x", printed)
    assert isinstance(failure, CannotBuild)
    assert said in str(failure)
    assert "\n" not in str(failure)


@pytest.mark.parametrize(
    "printed",
    [
        "# k8s.io/kubernetes/cmd/kube-apiserver\n./main.go:3:2: undefined: x",
        "k8s.io/api@v0.36.3: reading https://proxy.example/x.zip: 404 Not Found",
        "verifying module: checksum mismatch",
    ],
)
def test_sources_that_do_not_build_are_a_failure(printed: str) -> None:
    failure = _failure("go build x", printed)
    assert not isinstance(failure, CannotBuild)
    assert printed in str(failure)
