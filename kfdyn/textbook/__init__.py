"""The sources executed: plain NumPy in their own notation, to read beside the papers and as an oracle of the rest."""
