"""Reasons of the condition Admitted; the first two are event reasons as well."""

# Reasons of the Admitted condition; the first two are event reasons as well
REASON_ADMISSION_REFUSED = "AdmissionRefused"
REASON_ADMISSION_FAILED = "AdmissionFailed"
REASON_ADMITTED = "Admitted"
