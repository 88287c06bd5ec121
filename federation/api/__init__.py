"""The wire vocabulary: our kinds, names, quantities, selectors, conditions. Pure; it imports nothing that acts."""
