"""The sources executed: plain NumPy in their own notation, for reading beside the papers and as an oracle of the rest."""
