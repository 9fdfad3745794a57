//! Sabotage: how many seeds it takes until a guard that was turned off is missed.
