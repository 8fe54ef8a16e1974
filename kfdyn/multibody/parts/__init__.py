"""What a system is made of: bodies, hinges, rotors, couplings."""
