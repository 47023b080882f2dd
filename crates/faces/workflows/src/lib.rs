//! The workflows face (seed 004): REST under `/v1` and `/api/v1`, live events over SSE and WebSocket.
