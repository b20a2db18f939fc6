"""What every part of the pipeline uses: errors, hashes, locks, ids, files that are written as a whole, text for terminals."""
