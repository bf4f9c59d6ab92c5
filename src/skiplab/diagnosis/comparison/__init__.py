"""A researcher's own networks beside others: trained on the same batches, measured, and judged in pairs."""

from skiplab.diagnosis.comparison.result import Comparison as Comparison
from skiplab.diagnosis.comparison.running import compare as compare
