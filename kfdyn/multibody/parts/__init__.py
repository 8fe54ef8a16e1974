"""Parts of a system: bodies, hinges, rotors, couplings."""
