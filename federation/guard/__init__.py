"""What all guards over moves and deletions share: counting moves, recording holds, reading approvals."""
