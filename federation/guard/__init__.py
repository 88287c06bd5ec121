"""The common part of all guards over moves and deletions: counting moves, recording holds, reading approvals."""
