"""`memdir bench traces`: made-up users do real file operations in a traced mount; what is told of them is judged."""
