//go:build never

// Package kubernetes lists what build.py builds besides the tools of go.mod.
package kubernetes

import _ "k8s.io/kubernetes/test/e2e"
