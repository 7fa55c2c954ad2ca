"""The built-in environment: files, a calendar, a wallet and contacts, in a language small enough to learn on a CPU."""
