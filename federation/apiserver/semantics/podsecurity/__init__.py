"""Pod Security Standards as in kube-apiserver: levels of namespaces, and checks of pods."""
