"""Mutation: changes one token of a rule and demands that the tests of its package notice."""
