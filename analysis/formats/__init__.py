"""Readers of the formats that Spark does not know: EDN and Fressian. Pure functions on text or bytes."""
