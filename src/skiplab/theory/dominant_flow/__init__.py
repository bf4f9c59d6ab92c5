"""How much of a unit's gradient comes from the output of the same number: yu2019's trivial case and its formulas."""
