"""Conditions and event reasons of rollouts in waves."""

# Condition types and reasons of a FederatedRollout
ROLLOUT_PROGRESSING = "Progressing"
ROLLOUT_HEALTHY = "Healthy"
ROLLOUT_ROLLED_BACK = "RolledBack"
REASON_GATES_HELD = "GatesHeld"
REASON_GATE_NOT_HELD = "GateNotHeld"
REASON_PAUSED_BY_USER = "PausedByUser"
REASON_WAITING_FOR_APPROVAL = "WaitingForApproval"
REASON_WAVE_IS_EMPTY = "WaveIsEmpty"
REASON_NOT_PAUSED = "NotPaused"
REASON_WAVE_FAILED = "WaveFailed"
REASON_NOT_ROLLED_BACK = "NotRolledBack"

# Event reasons of the rollout controller
EVENT_ROLLOUT_STARTED = "RolloutStarted"
EVENT_WAVE_STARTED = "WaveStarted"
EVENT_WAVE_COMPLETE = "WaveComplete"
EVENT_ROLLOUT_COMPLETE = "RolloutComplete"
EVENT_ROLLOUT_STOPPED = "RolloutStopped"
EVENT_ROLLING_BACK = "RollingBack"
EVENT_ROLLED_BACK = "RolledBack"
